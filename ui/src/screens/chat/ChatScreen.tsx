import './chat.css';
import { useParams } from 'react-router';
import { Chat } from './Chat';
import { ChatChooser, ChatList } from './ChatList';
import { NewChat } from './NewChat';

/** `/chat` begins a chat, `/chat/{session}` is one. */
export function ChatScreen() {
  const { id } = useParams();
  return (
    <div className="chat">
      <ChatList chosen={id} />
      <div className="chat-main">
        <ChatChooser chosen={id} />
        {id === undefined ? <NewChat /> : <Chat key={id} id={id} />}
      </div>
    </div>
  );
}
